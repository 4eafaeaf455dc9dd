print("ieumd")
